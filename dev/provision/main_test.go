package main

import (
	"context"
	"errors"
	"testing"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"all"}, {"tools", "filters"}} {
		if err := run(context.Background(), args); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v, want the usage", args, err)
		}
	}
}
