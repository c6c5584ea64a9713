"""What several flows share: asking the marketplace, working in groups, closing tasks. Steps know no flow."""
