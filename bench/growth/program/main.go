// Program growth runs every parser of outside input on inputs of two sizes, in
// every form that an input can have, and prints what each run cost: a line of
// JSON with the steps that were taken, what was allocated and how long the answer
// is. Steps are the counters of coverage, so it must be built by
//
//	go build -cover -covermode=atomic -coverpkg=…
//
// No clock is read. The test beside it builds it, runs it, and judges.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	goruntime "runtime"
	"runtime/coverage"
	"runtime/debug"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/limits/growth"
)

// parser is a row of the table.
type parser struct {
	name string // package, as below the module, and what it reads
	// read reads the input. An error of ours is what a caller would be answered.
	read func(in []byte) error
	// forms are the inputs, of about n bytes.
	forms []shape
	// multiple and constant bound what may be allocated: multiple for each byte
	// of input, and constant. 0: 64, and 256 KiB.
	multiple, constant int
	// n is the smaller size. 0: 4 KiB.
	n int
}

// shape makes an input of about n bytes.
type shape struct {
	name string
	make func(n int) []byte
}

// Cost is what one run cost.
type Cost struct {
	Parser, Form       string
	Multiple, Constant int
	Input              int    // bytes
	Steps              uint64 // blocks of code that were run
	Allocations, Bytes uint64
	Answer, Details    int    // of an error: its bytes, and how many fields it names
	Panic              string `json:",omitempty"`
}

// garbage is how much is allocated before it is collected, in bytes.
const garbage = 256 << 20

func main() {
	// One processor, and no collection in the middle of a run: else a pool that was
	// filled by the first run may be empty in the second.
	goruntime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	var allocated uint64
	for _, p := range table() {
		n := p.n
		if n == 0 {
			n = 4 << 10
		}
		for _, f := range p.forms {
			for _, size := range []int{n, 4 * n} {
				if allocated > garbage {
					goruntime.GC()
					allocated = 0
				}
				c, err := measure(p, f, size)
				allocated += 2*c.Bytes + uint64(size)
				if err != nil {
					fmt.Fprintln(os.Stderr, "growth:", err)
					os.Exit(1)
				}
				line, _ := json.Marshal(c) // numbers and names only
				fmt.Println(string(line))
			}
		}
	}
}

// measure runs p on an input: once for the steps, and for what it allocates once
// more, so that what is made once, such as the shape of a type or a pooled buffer,
// is not counted.
func measure(p parser, f shape, n int) (Cost, error) {
	in := f.make(n)
	c := Cost{Parser: p.name, Form: f.name, Input: len(in), Multiple: 64, Constant: 256 << 10}
	if p.multiple > 0 {
		c.Multiple = p.multiple
	}
	if p.constant > 0 {
		c.Constant = p.constant
	}
	var failed error
	if err := coverage.ClearCounters(); err != nil {
		return c, fmt.Errorf("this is not built as it must be: %w", err)
	}
	c.Panic, failed = p.try(in)
	steps, err := counted()
	if err != nil {
		return c, err
	}
	c.Steps = steps
	c.Bytes, c.Allocations = growth.Allocated(func() { _, _ = p.try(in) })
	c.Answer, c.Details = answered(failed)
	return c, nil
}

// try reads in, and returns what it panics with.
func (p parser) try(in []byte) (panicked string, failed error) {
	defer func() {
		if v := recover(); v != nil {
			panicked = fmt.Sprint(v)
		}
	}()
	return "", p.read(in)
}

// answered returns the size of what a caller gets for err.
func answered(err error) (size, details int) {
	var e *apierror.Error
	if !errors.As(err, &e) {
		return 0, 0
	}
	w := httptest.NewRecorder()
	quiet.Error(w, httptest.NewRequest("POST", "/", nil), err)
	return w.Body.Len(), strings.Count(w.Body.String(), `"field":`)
}

// quiet answers and logs nothing.
var quiet = httpapi.Adapter{Log: slog.New(slog.DiscardHandler)}

// counted sums the counters.
func counted() (uint64, error) {
	var b bytes.Buffer
	if err := coverage.WriteCounters(&b); err != nil {
		return 0, fmt.Errorf("read the counters: %w", err)
	}
	return sum(b.Bytes())
}

// invalid is an error with details, for parsers that return those.
func invalid(list []decision.Detail) error { return apierror.Invalid(list) }
