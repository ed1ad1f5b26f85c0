package sluice

import "iter"

// each goes through a list page by page: get reads the page of p, and follow has p ask for
// the one behind a cursor. params stay as they are.
func each[P, T any](params *P, get func(*P) ([]T, *string, error), follow func(*P, string)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var p P
		if params != nil {
			p = *params
		}
		for {
			entries, next, err := get(&p)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if next == nil || *next == "" {
				return
			}
			follow(&p, *next)
		}
	}
}
