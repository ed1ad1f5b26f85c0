package mp4

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBegin(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]error{"": ErrNotMP4, "\x00\x00\x00\x08fty": ErrNotMP4, "no video no video": ErrNotMP4, "\x00\x00\x00\x08ftyp": nil, "\x00\x00\x00\x18ftypisom and more": nil} {
		got, err := io.ReadAll(Begin(iotest.OneByteReader(strings.NewReader(in))))
		if !errors.Is(err, want) || err == nil && string(got) != in || err != nil && len(got) > 0 {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(Begin(iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Error(err)
	}
}
