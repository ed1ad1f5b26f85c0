package assets

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/media/files/fragments"
)

// What is kept of films is bounded, even where one alone passes the bound.
func TestWhatIsKeptOfFilmsIsBounded(t *testing.T) {
	t.Parallel()
	var c Cuts
	read := func(file string, size int) (reads int) {
		for range 2 {
			_, err := c.of(t.Context(), file, func() (fragments.Film, error) {
				reads++
				return fragments.Film{Tracks: []fragments.Cut{{Own: make([]byte, size)}}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return reads
	}
	for i := range 5 {
		if n := read(fmt.Sprint("film ", i), maxCuts/3); n != 1 {
			t.Errorf("a film is read %d times", n)
		}
	}
	if n := read("a huge one", maxCuts+1); n != 2 {
		t.Errorf("a film that is larger than the bound is read %d times", n)
	}
	held := 0
	for _, e := range c.films {
		held += e.size
	}
	if held != c.bytes || held > maxCuts || len(c.films) != 3 {
		t.Errorf("%d bytes in %d films are held, %d counted", held, len(c.films), c.bytes)
	}
}
