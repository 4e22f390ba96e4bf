"""The local app: a page where a person drops a file of predictions and gets the report, and the server behind it.

The server itself does not read predictions. It stores files, checks who may send requests, and starts child processes
that run the command line (:mod:`calibrary.cli.app_work`). The child processes read the files, within limits of time and
memory.
"""
