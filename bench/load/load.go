// Package load makes requests for benchmarks: closed loop, where each
// connection waits for its answer, to find a throughput; and open loop, where
// requests leave at set times whatever the answers do, to find latencies that
// are not flattered by waiting.
//
// It speaks HTTP/1.1 on plain sockets with fixed requests, because a client that
// does more costs more than the proxy that is measured.
package load

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Request is what is sent, over and over.
type Request struct {
	Addr string   // host:port
	Path string   // of a GET
	Keys []string // API keys that the requests have in turn; none: they have none
	JSON string   // the body of a POST, in place of a GET; empty: a GET
}

// Key is the first of the keys; "": there is none.
func (r Request) Key() string {
	if len(r.Keys) == 0 {
		return ""
	}
	return r.Keys[0]
}

// Result is what a run gave.
type Result struct {
	Requests  int
	Elapsed   time.Duration
	Latencies []time.Duration
}

// Rate is the number of requests a second.
func (r Result) Rate() float64 { return float64(r.Requests) / r.Elapsed.Seconds() }

// Quantile is the value below which the part q of v lie; 0 of nothing.
func Quantile[T cmp.Ordered](v []T, q float64) (at T) {
	if len(v) == 0 {
		return at
	}
	return slices.Sorted(slices.Values(v))[min(len(v)-1, int(q*float64(len(v))))]
}

// Median is the middle of v; 0 of nothing.
func Median[T cmp.Ordered](v []T) T { return Quantile(v, 0.5) }

// Closed keeps connections busy for d.
func Closed(req Request, connections int, d time.Duration) (Result, error) {
	end := time.Now().Add(d)
	return run(req, connections, func(_ int, n int) (time.Time, bool) {
		now := time.Now()
		return now, now.Before(end)
	})
}

// Open sends rate requests a second for d, spread over connections; a latency
// counts from the time at which the request was due.
func Open(req Request, connections, rate int, d time.Duration) (Result, error) {
	start := time.Now().Add(10 * time.Millisecond)
	gap := time.Second / time.Duration(rate)
	return run(req, connections, func(worker, n int) (time.Time, bool) {
		due := start.Add(gap * time.Duration(n*connections+worker))
		time.Sleep(time.Until(due))
		return due, due.Sub(start) < d
	})
}

// Times makes that many requests, one after the other.
func Times(req Request, requests int) error {
	_, err := keepBusy(req, func(n int) (time.Time, bool) { return time.Now(), n < requests })
	return err
}

// run lets each connection make requests at the times that next gives.
func run(req Request, connections int, next func(worker, n int) (time.Time, bool)) (Result, error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var all Result
	var problems []error
	began := time.Now()
	for worker := range connections {
		wg.Go(func() {
			latencies, err := keepBusy(req, func(n int) (time.Time, bool) { return next(worker, n) })
			mu.Lock()
			defer mu.Unlock()
			all.Latencies = append(all.Latencies, latencies...)
			problems = append(problems, err)
		})
	}
	wg.Wait()
	all.Elapsed = time.Since(began)
	all.Requests = len(all.Latencies)
	return all, errors.Join(problems...)
}

// keepBusy is one connection.
func keepBusy(req Request, next func(n int) (time.Time, bool)) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", req.Addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	texts := req.texts()
	first := rand.IntN(len(texts))
	r := bufio.NewReaderSize(conn, 16<<10)
	var latencies []time.Duration
	for n := 0; ; n++ {
		due, more := next(n)
		if !more {
			return latencies, nil
		}
		if _, err := conn.Write(texts[(first+n)%len(texts)]); err != nil {
			return latencies, err
		}
		if err := read(r); err != nil {
			return latencies, fmt.Errorf("%s: %w", req.Path, err)
		}
		latencies = append(latencies, time.Since(due))
	}
}

// texts are the requests, one for each key.
func (r Request) texts() [][]byte {
	head, end := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n", r.Path, r.Addr), "\r\n"
	if r.JSON != "" {
		head = fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", r.Path, r.Addr, len(r.JSON))
		end += r.JSON
	}
	if len(r.Keys) == 0 {
		return [][]byte{[]byte(head + end)}
	}
	list := make([][]byte, len(r.Keys))
	for i, key := range r.Keys {
		list[i] = []byte(head + "Authorization: Bearer " + key + "\r\n" + end)
	}
	return list
}

var success, contentLength = []byte("HTTP/1.1 200"), []byte("content-length: ")

// read takes one answer of success, with a Content-Length, off the connection.
func read(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, success) {
		return fmt.Errorf("answer %q, want status 200", bytes.TrimSpace(line))
	}
	length := 0
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):])))
		}
	}
	_, err = r.Discard(length)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
