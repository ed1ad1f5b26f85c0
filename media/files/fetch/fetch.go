// Package fetch reads a file from an address that a customer chose, in ranges of
// bounded size, through the guarded client: whatever the file's size, only one
// range of it is in memory.
package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/platform/outbound"
)

// RangeSize is how much is asked for at a time, in bytes. A server that does not
// know ranges can serve files up to this size.
const RangeSize = 8 << 20

// rangeTimeout bounds one range.
const rangeTimeout = 60 * time.Second

// A source that takes longer than patience must come at slowest bytes a second, or it
// is given up: it would hold a worker for the sake of nothing.
const (
	patience = time.Minute
	slowest  = 64 << 10
)

// Error is a source that could not be read. Its text may be shown to the
// customer who named the source.
type Error struct {
	Message   string
	Permanent bool  // trying again will not help
	Cause     error // for the log; may be nil
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// NewClient returns a guarded client fit for Open. allow lists addresses that
// are not public and may be called all the same.
func NewClient(allow []netip.Prefix) *outbound.Client {
	return outbound.New(outbound.Config{Allow: allow, Timeout: rangeTimeout, MaxBody: RangeSize})
}

// Reader reads a source from its start to its end.
type Reader struct {
	ctx    context.Context
	client *outbound.Client
	url    string
	size   int64  // of the whole; -1: not known yet
	pos    int64  // bytes asked for so far
	tag    string // validator of the version that is read
	buf    []byte
	now    func() time.Time
	waited time.Duration // for the source, in all
}

// Open returns a reader of url. Nothing is asked for before the first Read.
// Errors of Read are *Error, but for io.EOF.
func Open(ctx context.Context, client *outbound.Client, url string) *Reader {
	return &Reader{ctx: ctx, client: client, url: url, size: -1, now: time.Now}
}

// Size asks for the first range, if none has come yet, and returns the length of
// the whole source in bytes.
func (r *Reader) Size() (int64, error) {
	if r.size < 0 {
		err := r.next()
		if errors.Is(err, io.EOF) {
			r.size, err = 0, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return r.size, nil
}

// Read reads on, asking for the next range where needed.
func (r *Reader) Read(p []byte) (int, error) {
	if len(r.buf) == 0 {
		if r.size >= 0 && r.pos >= r.size {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.buf)
	r.buf = r.buf[n:]
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// next asks for the next range. If-Range makes a server send the whole file
// when it has changed since the first range: two halves of different files
// never become one.
func (r *Reader) next() error {
	h := http.Header{"Range": {"bytes=" + strconv.FormatInt(r.pos, 10) + "-" + strconv.FormatInt(r.pos+RangeSize-1, 10)}}
	if r.tag != "" {
		h.Set("If-Range", r.tag)
	}
	began := r.now()
	res, err := r.client.Do(r.ctx, outbound.Request{Method: http.MethodGet, URL: r.url, Header: h})
	if err != nil {
		return unreached(err)
	}
	if r.waited += r.now().Sub(began); r.tooSlow(len(res.Body)) {
		return &Error{Message: "The source is too slow: at least " + strconv.Itoa(slowest) + " bytes a second are expected.", Permanent: true}
	}
	switch {
	case res.Status == http.StatusPartialContent:
		return r.part(res)
	case res.Status == http.StatusOK && r.pos == 0:
		return r.whole(res)
	case res.Status == http.StatusOK:
		return &Error{Message: "The source changed while it was read."}
	case res.Status == http.StatusRequestedRangeNotSatisfiable && r.pos == 0:
		return io.EOF // an empty file has no range
	}
	again := res.Status >= 500 || res.Status == http.StatusTooManyRequests || res.Status == http.StatusRequestTimeout
	return &Error{Message: "The source answered with status " + strconv.Itoa(res.Status) + ".", Permanent: !again}
}

// tooSlow says whether r's source, of which so many more bytes have come, is.
func (r *Reader) tooSlow(more int) bool {
	return r.waited > patience && float64(r.pos+int64(more)) < slowest*r.waited.Seconds()
}

// whole takes the answer of a server that does not know ranges.
func (r *Reader) whole(res outbound.Result) error {
	if res.Truncated {
		return &Error{Message: "The source does not serve byte ranges and is larger than " + strconv.Itoa(RangeSize) + " bytes.", Permanent: true}
	}
	r.buf, r.pos, r.size = res.Body, int64(len(res.Body)), int64(len(res.Body))
	if r.size == 0 {
		return io.EOF
	}
	return nil
}

// part takes a range. A server may send less than was asked for, but it must be
// the right part, and of a file of the same size.
func (r *Reader) part(res outbound.Result) error {
	from, size, ok := ContentRange(res.Header.Get("Content-Range"))
	if !ok || from != r.pos || len(res.Body) == 0 || res.Truncated || size < r.pos+int64(len(res.Body)) || r.size >= 0 && size != r.size {
		return &Error{Message: "The source answered with a range that was not asked for.", Permanent: true}
	}
	r.size = size
	r.pos += int64(len(res.Body))
	r.buf = res.Body
	if tag := res.Header.Get("ETag"); !strings.HasPrefix(tag, "W/") {
		r.tag = tag
	}
	return nil
}

// ContentRange reads "bytes FROM-TO/SIZE", in linear time and without memory; the
// client bounds headers.
func ContentRange(s string) (from, size int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(s, "/")
	first, _, ok3 := strings.Cut(span, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	size, err2 := strconv.ParseInt(total, 10, 64)
	return from, size, ok && ok2 && ok3 && err == nil && err2 == nil && from >= 0 && size >= 0
}

// unreached turns a failure of the guarded client into an error. Only what the
// address itself forbids is permanent; networks recover.
func unreached(err error) *Error {
	f, ok := errors.AsType[*outbound.Failure](err)
	permanent := ok && (f.Reason == outbound.ReasonURL || f.Reason == outbound.ReasonAddress)
	return &Error{Message: "The source could not be reached: " + err.Error() + ".", Permanent: permanent, Cause: errors.Unwrap(err)}
}
