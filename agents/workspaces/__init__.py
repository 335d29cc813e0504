"""The directories in which code works: one for each conversation, below its owner's. Only files; who runs is elsewhere.

    WORKSPACES_DIR/OWNER/SESSION/  inputs  work  out  runs  skills  about.json

What is here is a copy of something (inputs, skills) or not worth keeping unless it became a file of the conversation.
So a workspace may be swept at any time, and made anew; another machine has another one.
"""
