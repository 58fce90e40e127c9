"""What tests of strategies are made of: facts written down, facts that watch who reads them, and the contract."""
