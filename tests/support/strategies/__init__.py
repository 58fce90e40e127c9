"""Parts of tests of strategies: facts written down, facts that note their readers, and the contract."""
