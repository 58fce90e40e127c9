"""The programs: operate, serve and uninstall."""
