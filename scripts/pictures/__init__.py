"""Pictures of the documents, which headless Chromium takes of pages made from what commands print."""
