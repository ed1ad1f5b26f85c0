package captions

import (
	"strconv"
	"strings"
	"time"
)

// MaxContent bounds a caption file, in bytes.
const MaxContent = 1 << 20

// Problem is what is wrong with a WebVTT file, and on which line.
type Problem struct {
	Line  int
	Issue string
}

// Parse counts the cues of a WebVTT file (W3C WebVTT). It checks what players
// stumble over: the header, the form and order of times. A nil problem means that
// the file is good. It takes time linear in text, and memory of at most six times
// its length, which Input bounds by MaxContent.
func Parse(text string) (cues int, problem *Problem) {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	first, _, _ := strings.Cut(text, "\n")
	if first != "WEBVTT" && !strings.HasPrefix(first, "WEBVTT ") && !strings.HasPrefix(first, "WEBVTT\t") {
		return 0, &Problem{1, "does not begin with WEBVTT"}
	}
	var last time.Duration
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		if !strings.Contains(line, "-->") {
			continue
		}
		start, end, ok := timing(line)
		switch {
		case !ok:
			return 0, &Problem{n, "has times that do not read HH:MM:SS.mmm --> HH:MM:SS.mmm"}
		case end <= start:
			return 0, &Problem{n, "has a cue that does not end after its start"}
		case start < last:
			return 0, &Problem{n, "has a cue that starts before the one above it"}
		}
		last = start
		cues++
	}
	return cues, nil
}

// timing reads "START --> END settings".
func timing(line string) (start, end time.Duration, ok bool) {
	from, rest, _ := strings.Cut(line, "-->")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, 0, false
	}
	start, ok1 := timestamp(strings.TrimSpace(from))
	end, ok2 := timestamp(fields[0])
	return start, end, ok1 && ok2
}

// timestamp reads [HH:]MM:SS.mmm; hours are not bounded by a clock.
func timestamp(s string) (time.Duration, bool) {
	whole, millis, ok := strings.Cut(s, ".")
	parts := strings.Split(whole, ":")
	if len(parts) == 2 {
		parts = append([]string{"00"}, parts...)
	}
	if !ok || len(parts) != 3 {
		return 0, false
	}
	h, ok1 := digits(parts[0], 2, 4)
	m, ok2 := digits(parts[1], 2, 2)
	sec, ok3 := digits(parts[2], 2, 2)
	ms, ok4 := digits(millis, 3, 3)
	d := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(sec)*time.Second + time.Duration(ms)*time.Millisecond
	return d, ok1 && ok2 && ok3 && ok4 && m < 60 && sec < 60
}

// digits reads a number that is written with lo to hi digits and nothing else.
func digits(s string, lo, hi int) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && len(s) >= lo && len(s) <= hi && strings.Trim(s, "0123456789") == ""
}
