"""The local app: a page where a person drops a file of predictions and gets the report, and the server behind it.

The server does not read predictions. It keeps files, asks who may talk to it, and starts child processes, which
are the command line (:mod:`calibrary.cli.app_work`): they read what was dropped, within limits of time and memory.
"""
