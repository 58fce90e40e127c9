"""Expressions as trees and as text."""
