"""How much CPU a product costs, beside a bare fetch loop and a careful weekend script. `make bench`; see README.md."""
