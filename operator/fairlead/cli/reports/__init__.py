"""What commands print: texts, data and JUnit reports; pure."""
