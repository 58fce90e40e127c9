"""Makes what is published: packages, image, chart, bundle, and the version that they all carry."""
