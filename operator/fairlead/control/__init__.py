"""What is done so that the cluster becomes what policies and settings want: decided here, and carried out."""
