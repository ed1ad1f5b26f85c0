package fetch_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"sluice.dev/sluice/media/files/fetch"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func read(t *testing.T, h http.HandlerFunc) ([]byte, error) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return io.ReadAll(fetch.Open(t.Context(), fetch.NewClient(loopback), s.URL+"/film.mp4"))
}

func TestAFileArrivesWholeInRanges(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, fetch.RangeSize, fetch.RangeSize + 1, 2*fetch.RangeSize + 5} {
		want := bytes.Repeat([]byte("0123456789a"), size/11+1)[:size]
		asked := 0
		got, err := read(t, func(w http.ResponseWriter, r *http.Request) {
			asked++
			w.Header().Set("ETag", `"v1"`)
			http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(want))
		})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
		if most := size/fetch.RangeSize + 1; asked > most {
			t.Errorf("%d bytes: %d requests, want at most %d", size, asked, most)
		}
	}
}

func TestAServerWithoutRangesCanServeASmallFile(t *testing.T) {
	t.Parallel()
	plain := func(size int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) }
	}
	if got, err := read(t, plain(1000)); err != nil || len(got) != 1000 {
		t.Error(len(got), err)
	}
	if got, err := read(t, plain(0)); err != nil || len(got) != 0 {
		t.Error(len(got), err)
	}
	_, err := read(t, plain(fetch.RangeSize+1))
	wantError(t, "a large file", err, true)
}

func wantError(t *testing.T, name string, err error, permanent bool) {
	t.Helper()
	e, ok := errors.AsType[*fetch.Error](err)
	if !ok || e.Permanent != permanent {
		t.Errorf("%s: %v, want permanent %v", name, err, permanent)
	}
}

func TestWhichFailuresAreWorthAnotherTry(t *testing.T) {
	t.Parallel()
	for status, permanent := range map[int]bool{404: true, 401: true, 302: true, 416: true, 500: false, 503: false, 429: false, 408: false} {
		calls := 0
		_, err := read(t, func(w http.ResponseWriter, _ *http.Request) {
			if calls++; calls == 1 && status == 416 {
				w.Header().Set("Content-Range", "bytes 0-0/2")
				w.WriteHeader(206)
				_, _ = w.Write([]byte("x"))
				return
			}
			w.WriteHeader(status)
		})
		wantError(t, strconv.Itoa(status), err, permanent)
	}
	_, err := io.ReadAll(fetch.Open(t.Context(), fetch.NewClient(nil), "http://127.0.0.1:9/film.mp4"))
	wantError(t, "an address that is not public", err, true)
	_, err = io.ReadAll(fetch.Open(t.Context(), fetch.NewClient(loopback), "http://127.0.0.1:9/film.mp4"))
	wantError(t, "nobody listens", err, false)
}

func TestAnswersThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"", "bytes 5-9/10", "bytes */10", "bytes 0-9/3", "bytes 0-9/x", "lines 0-9/10", "bytes -1-9/10"} {
		_, err := read(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", header)
			w.WriteHeader(206)
			_, _ = w.Write([]byte("0123456789"))
		})
		wantError(t, header, err, true)
	}
}

func TestASourceThatChangesBetweenRangesIsReadAgain(t *testing.T) {
	t.Parallel()
	calls := 0
	_, err := read(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		w.Header().Set("ETag", `"v`+strconv.Itoa(calls)+`"`)
		http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(make([]byte, fetch.RangeSize+10)))
	})
	wantError(t, "changed", err, false)
}
