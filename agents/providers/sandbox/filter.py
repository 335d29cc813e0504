"""A seccomp filter as a BPF program, made without a library: what code in a sandbox may not ask the kernel for.

It is a list of refusals, not of permissions: full Python and whatever the machine has must go on working. Namespaces,
an unprivileged user and limits hold without it; it takes away what a fault in the kernel is reached by.
"""

import errno
import platform
import struct
from typing import Final

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF: LD|W|ABS, JEQ, JGE, JSET, RET
_NR, _ARCH, _ARG0, _ARG1, _ARG3 = (
    0,
    4,
    16,
    24,
    40,
)  # offsets in struct seccomp_data; arguments: the low half, little endian
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000  # x86-64 only: numbers of the x32 calls begin here
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEWUSER|PID|NET|IPC|UTS|CGROUP|NS|TIME
_SOCKETS = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6: in a network of its own. AF_VSOCK, for one, would reach the host
_TERMINAL = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD: the last loads drivers
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_PRIO_USER = 2

_ARCHS: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# name: (x86-64, arm64); None = the platform has no such call
_REFUSED: Final[dict[str, tuple[int | None, int | None]]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "lookup_dcookie": (212, 18),
    "vhangup": (153, 58),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "personality": (135, 92),
    # memory that no file system and no limit counts
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "ioprio_set": (251, 30),
}
# Answered as by a kernel that does not have them, so that the C library goes another way. clone3 hides its flags behind
# a pointer; memory of a memfd is counted nowhere.
_UNKNOWN: Final = {"clone3": (435, 435), "memfd_create": (319, 279)}
_CLONE, _SOCKET, _SOCKETPAIR, _IOCTL, _MMAP = (56, 220), (41, 198), (53, 199), (16, 29), (9, 222)
# What slows or limits another process. Process 1 watches the command; it must not be made to wait.
_SETPRIORITY: Final = (141, 140)
_OF_PROCESS: Final = {
    "prlimit64": (302, 261),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}


def program() -> bytes | None:
    """Return the filter as bwrap's --seccomp reads it; None where we do not know the platform's numbers."""
    machine = platform.machine()
    arch = _ARCHS.get(machine)
    if arch is None:
        return None
    column = list(_ARCHS).index(machine)
    steps = [_step(_LOAD, _ARCH), _step(_EQUAL, arch, skip_not=0, skip=1), _step(_RETURN, _KILL), _step(_LOAD, _NR)]
    if machine == "x86_64":
        steps += [_step(_AT_LEAST, _X32, skip_not=1), _refusal(errno.ENOSYS)]
    for calls, error in ((_REFUSED, errno.EPERM), (_UNKNOWN, errno.ENOSYS)):
        for numbers in calls.values():
            number = numbers[column]
            if number is not None:
                steps += [_step(_EQUAL, number, skip_not=1), _refusal(error)]
    steps += _when(_CLONE[column], _ARG0, [_step(_ANY_BIT, _NEW_NAMESPACES, skip_not=1), _refusal(errno.EPERM)])
    steps += _when(_IOCTL[column], _ARG1, _refused_values(_TERMINAL))
    # memory that is shared and has no file stays when nothing shows it any more, so it could not be counted
    shared = [_step(_ANY_BIT, _MAP_ANONYMOUS, skip_not=2), _step(_ANY_BIT, _MAP_SHARED, skip_not=1)]
    steps += _when(_MMAP[column], _ARG3, [*shared, _refusal(errno.EPERM)])
    for call in _OF_PROCESS.values():
        steps += _when(call[column], _ARG0, _refused_values((1,)))
    of_user = [*_refused_values((_PRIO_USER,)), _step(_LOAD, _ARG1), *_refused_values((1,))]
    steps += _when(_SETPRIORITY[column], _ARG0, of_user)
    for call in (_SOCKET, _SOCKETPAIR):
        steps += _when(call[column], _ARG0, _only_values(_SOCKETS))
    return b"".join([*steps, _step(_RETURN, _ALLOW)])


def _when(number: int, argument: int, then: list[bytes]) -> list[bytes]:
    """Return steps that look at an argument of one call; the call's number is loaded again behind them."""
    return [_step(_EQUAL, number, skip_not=len(then) + 2), _step(_LOAD, argument), *then, _step(_LOAD, _NR)]


def _refused_values(values: tuple[int, ...]) -> list[bytes]:
    return [step for value in values for step in (_step(_EQUAL, value, skip_not=1), _refusal(errno.EPERM))]


def _only_values(values: tuple[int, ...]) -> list[bytes]:
    """Return steps that go on behind themselves for one of the values, and refuse any other."""
    left = len(values)
    return [*(_step(_EQUAL, value, skip=left - n) for n, value in enumerate(values)), _refusal(errno.EAFNOSUPPORT)]


def _refusal(error: int) -> bytes:
    return _step(_RETURN, _ERRNO | error)


def _step(code: int, value: int, *, skip: int = 0, skip_not: int = 0) -> bytes:
    """Return one instruction. skip, skip_not: of a comparison, how many steps are left out if it holds, if not."""
    return struct.pack("<HBBI", code, skip, skip_not, value)
