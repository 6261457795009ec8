"""Show what a worker changed; let a human mark, comment and drop hunks."""
