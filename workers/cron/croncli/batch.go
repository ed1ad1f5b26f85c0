package croncli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxLine bounds one input line of Batch, in bytes.
const maxLine = 64 << 10

// row is one line of Batch's input.
type row struct {
	Zone *string `json:"tz"`
	Expr *string `json:"expr"`
	From *string `json:"from"`
}

// answer is one line of Batch's output: exactly one of the two is set.
type answer struct {
	Next  string `json:"next,omitempty"`
	Error string `json:"error,omitempty"`
}

// Batch reads JSON lines {"tz","expr","from"} and answers each, in order, with
// {"next"} or {"error"}. A bad line is answered with its error and does not
// stop the rest; blank lines are passed over. The status is 0 unless reading or
// writing fails, or a line is longer than 64 KiB.
//
// It takes time linear in what it reads, and memory for a line, of 64 KiB at most,
// of which at most 512 bytes are allocated for each byte.
func Batch(in io.Reader, out, errs io.Writer) int {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := encoder.Encode(answerLine(lines.Bytes())); err != nil {
			return exitIO
		}
	}
	if err := lines.Err(); err != nil {
		_, _ = fmt.Fprintln(errs, "sluice cron next: reading the batch:", err)
		return exitIO
	}
	return exitOK
}

func answerLine(line []byte) answer {
	next, err := nextOf(line)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Next: format(next)}
}

// nextOf computes the first run of one input line. All three members are
// required.
func nextOf(line []byte) (time.Time, error) {
	var r row
	if err := json.Unmarshal(line, &r); err != nil {
		return time.Time{}, fmt.Errorf("not a JSON object with strings tz, expr and from: %w", err)
	}
	if r.Zone == nil || r.Expr == nil || r.From == nil || *r.Zone == "" || *r.From == "" {
		return time.Time{}, errors.New("tz, expr and from are all required")
	}
	runs, err := upcoming(Preview{Expr: *r.Expr, Zone: *r.Zone, From: *r.From, Count: 1}, time.Time{})
	if err != nil {
		return time.Time{}, err
	}
	if len(runs) == 0 {
		return time.Time{}, errors.New("no run before the year 10000")
	}
	return runs[0], nil
}
