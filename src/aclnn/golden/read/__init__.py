"""What files hold: one gate, containers of arrays, case files, and what there is to compare in them."""
