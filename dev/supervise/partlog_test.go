package supervise

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestColoursAreForTerminalsOnly(t *testing.T) {
	t.Parallel()
	parts := []Part{{Name: "a"}, {Name: "bb"}}
	for color, want := range map[bool]string{false: "a  | hi\nbb | ho\n", true: "\x1b[36ma  |\x1b[0m hi\n\x1b[33mbb |\x1b[0m ho\n"} {
		var out bytes.Buffer
		term := newTerminal(&out, color, parts)
		term.line("a", []byte("hi"))
		term.line("bb", []byte("ho"))
		if out.String() != want {
			t.Errorf("colour %v: %q, want %q", color, out.String(), want)
		}
	}
}

func TestALogFileIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, err := openPartLog(dir, "p", newTerminal(nil, false, nil))
	if err != nil {
		t.Fatal(err)
	}
	line := append(bytes.Repeat([]byte("x"), 4095), 10)
	chunk := bytes.Repeat(line, maxLogFile/len(line)/4)
	for range 11 { // 2.75 files' worth
		if _, err := log.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v: want the log and one older", files, err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > maxLogFile || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, mode %v", f.Name(), info.Size(), info.Mode())
		}
	}
}

func TestALogIsContinuedByTheNextRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		log, err := openPartLog(dir, "p", newTerminal(nil, false, nil))
		if err != nil {
			t.Fatal(err)
		}
		log.say("hello %d", 1)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "p.log")); err != nil || string(text) != "p hello 1\np hello 1\n" {
		t.Fatalf("%q, %v", text, err)
	}
}

func TestLineBuffer(t *testing.T) {
	t.Parallel()
	var got []string
	emit := func(line []byte) { got = append(got, string(line)) }
	var b lineBuffer
	for _, piece := range []string{"on", "e\ntwo\r\n\nth", "ree"} {
		b.write([]byte(piece), emit)
	}
	b.flush(emit)
	b.flush(emit)
	if want := "one|two||three"; strings.Join(got, "|") != want {
		t.Errorf("lines %q, want %s", got, want)
	}
	got = nil
	b.write(bytes.Repeat([]byte("x"), 2*maxLine+1), emit)
	if len(got) != 2 || len(got[0]) != maxLine {
		t.Errorf("a line without end gave %d pieces", len(got))
	}
}

func TestLastLineSkipsEmptyOnes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &lastLine{next: &out}
	for _, piece := range []string{"first\n", "second", "\n\n  \n"} {
		if _, err := l.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if l.text() != "second" || out.String() != "first\nsecond\n\n  \n" {
		t.Errorf("last %q, passed on %q", l.text(), out.String())
	}
}
