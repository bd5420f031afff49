"""A target result against a golden one: is it right, and if not, where and why?"""
