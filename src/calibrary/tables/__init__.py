"""Tables as people have them: every file, folder, pipe and stream is opened, checked and written in this room."""
