"""Policy files to policies, every problem with its line; and policies to text: schema and reference."""
