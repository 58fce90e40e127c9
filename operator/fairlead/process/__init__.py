"""Programs: operate, serve and uninstall."""
