package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
)

// times repeats unit until there are about n bytes.
func times(n int, unit string) string { return strings.Repeat(unit, max(1, n/len(unit))) }

// numbered is times, with a number in each unit's %d.
func numbered(n int, unit string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, unit, i)
	}
	return b.String()
}

// around is a form of head, many units and tail.
func around(name, head, unit, tail string) shape {
	return shape{name, func(n int) []byte { return []byte(head + times(n, unit) + tail) }}
}

// values are JSON values, and what claims to be one.
var values = []shape{
	around("blanks before", "", " ", "1"),
	around("blanks behind", "1", " ", ""),
	around("blanks behind an object", "{}", "\n", ""),
	around("blanks in an array", "[", "\t", "]"),
	around("blanks between elements", "[1", " ,\r\n 1", "]"),
	around("blanks between members", `{"a" : 1`, ` , "b" : 1`, "}"),
	around("blanks and no value", "", " ", ""),
	around("arrays within arrays", "", "[", ""),
	around("objects within objects", "", `{"a":`, ""),
	{"as deep as allowed", func(n int) []byte {
		return []byte(strings.Repeat(`{"`+strings.Repeat("n", n/60)+`":`, 60) + "1" + strings.Repeat("}", 60))
	}},
	around("the same name", `{"a":1`, `,"a":1`, "}"),
	around("no name", `{"":1`, `,"":1`, "}"),
	{"the same name under a long one", func(n int) []byte {
		return []byte(`{"` + times(n/2, "n") + `":{"":1` + times(n/2, `,"":1`) + `}}`)
	}},
	{"different names", func(n int) []byte { return []byte(`{"a":1` + numbered(n, `,"x%d":1`) + "}") }},
	{"different names in escapes", func(n int) []byte { return []byte(`{"a":1` + numbered(n, `,"\u0061%d":1`) + "}") }},
	around("a long name", `{"`, "n", `":1}`),
	around("a long text", `"`, "word ", `"`),
	around("escapes", `"`, `\\`, `"`),
	around("quotes in escapes", `"`, `\"`, `"`),
	around("characters in escapes", `"`, `\u00e9`, `"`),
	around("lone surrogates", `"`, `\ud800`, `"`),
	around("lone surrogates, one by one", `["a"`, `,"\udc00"`, "]"),
	around("surrogate pairs", `"`, `\ud83d\ude00`, `"`),
	around("a long number", "", "9", ""),
	around("a long fraction", "0.", "0", "1"),
	around("a long exponent", "1e", "9", ""),
	around("numbers", "[1", ",-1.5e3", "]"),
	around("empty objects", "[{}", ",{}", "]"),
	around("empty arrays", "[[]", ",[]", "]"),
	around("empty texts", `[""`, `,""`, "]"),
	around("nothings", "[null", ",null", "]"),
	around("commas", "[", ",", "]"),
	around("colons", "{", ":", "}"),
	around("bytes that are no UTF-8", `"`, "\xff", `"`),
	around("names that are no UTF-8", `{"a":1`, ",\"\xc3\x28\":1", "}"),
	around("control characters", `"`, "\x01", `"`),
	around("a text without end", `"`, "a", ""),
	around("closing", "", "]", ""),
	around("many parts", `[{"type":"text","text":"a"}`, `,{"type":"text","text":"a b"}`, "]"),
	around("many tools", `[{"type":"function","function":{"name":"f"}}`, `,{"type":"function","function":{"name":"f","parameters":{}}}`, "]"),
	around("many messages", `[{"role":"user","content":"a"}`, `,{"role":"user","content":"a"}`, "]"),
	around("many calls", `[{"index":0}`, `,{"index":0,"function":{"name":"f","arguments":"{"}}`, "]"),
}

// in puts every value where %s stands in each of frames, and leaves them alone.
func in(frames ...string) (list []shape) {
	list = append(list, values...)
	for _, frame := range frames {
		head, tail, _ := strings.Cut(frame, "%s")
		for _, v := range values {
			list = append(list, shape{v.name + " in " + frame, func(n int) []byte { return []byte(head + string(v.make(n)) + tail) }})
		}
	}
	return list
}

// signs are what texts that are no JSON are made of.
var signs = []string{" ", "\t", "\n", "\r", "\r\n", ",", ";", "=", "&", "%", "%41", "%ff", "a", "Z9", "/", "../", ":", "-", "->", ".", "0", "*", "\x00", "\xff",
	"é", `"`, "'", `\`, "<", "[", "]", "{", "}", "#", "@", "|", "~", "a=b&", "a=1;", "a, ", "a b ", "- ", "? ", "x:\n", "bytes=0-1,", "1.2.3.4, "}

// texts are inputs of one sign repeated, between each pair of head and tail.
func texts(frames ...string) (list []shape) {
	for _, frame := range append([]string{"%s"}, frames...) {
		head, tail, _ := strings.Cut(frame, "%s")
		for _, s := range signs {
			list = append(list, around(fmt.Sprintf("%q in %q", s, frame), head, s, tail))
		}
		list = append(list, shape{fmt.Sprintf("different names in %q", frame), func(n int) []byte { return []byte(head + numbered(n, "n%d=1&") + tail) }})
	}
	return list
}

// encoded puts forms in base64, where %s stands in frame.
func encoded(frame string, e *base64.Encoding, forms []shape) (list []shape) {
	head, tail, _ := strings.Cut(frame, "%s")
	for _, f := range forms {
		list = append(list, shape{f.name + " as " + frame, func(n int) []byte { return []byte(head + e.EncodeToString(f.make(n)) + tail) }})
	}
	return list
}

// lines are inputs of lines: streams, captions, playlists, settings.
func lines(head string, units ...string) (list []shape) {
	for _, u := range units {
		list = append(list, around(fmt.Sprintf("%q", u), head, u, ""), around(fmt.Sprintf("%q, ended", u), head, u, "\n\n"))
	}
	for _, s := range signs {
		list = append(list, around(fmt.Sprintf("%q", s), head, s, ""), around(fmt.Sprintf("%q on a line", s), head, s+"\n", "\n"))
	}
	return list
}

// box is a box of an MP4 file.
func box(kind string, content []byte) []byte {
	n := len(content) + 8
	return append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), kind[0], kind[1], kind[2], kind[3]}, content...)
}

// films are MP4 files, and what claims to be one.
var films = []shape{
	{"many tracks", boxed("moov", "trak")}, {"many empty boxes", boxed("moov", "free")}, {"many movies", boxed("", "moov")},
	{"many boxes at the top", boxed("", "free")}, {"many files", boxed("", "ftyp")}, {"many fragments", boxed("", "moof")},
	{"tracks with headers", func(n int) []byte {
		return movie(bytes.Repeat(box("trak", box("tkhd", make([]byte, 84))), max(1, n/100)))
	}},
	{"boxes within boxes", func(n int) []byte {
		b := box("trak", nil)
		for range n / 400 { // each is copied by the one around it
			b = box("trak", append(b, make([]byte, 392)...))
		}
		return movie(b)
	}},
	{"long brands", func(n int) []byte { return append(box("ftyp", make([]byte, n)), box("moov", nil)...) }},
	{"sizes of nothing", func(n int) []byte { return append(box("ftyp", []byte("isom0000")), make([]byte, n)...) }},
	{"a long table", func(n int) []byte {
		return movie(box("trak", box("mdia", box("minf", box("stbl", box("stsd", make([]byte, n)))))))
	}},
}

func movie(content []byte) []byte {
	return append(box("ftyp", []byte("isom0000")), box("moov", content)...)
}

func boxed(outer, inner string) func(int) []byte {
	return func(n int) []byte {
		many := bytes.Repeat(box(inner, nil), max(1, n/8))
		if outer == "" {
			return append(box("ftyp", []byte("isom0000")), many...)
		}
		return append(box("ftyp", []byte("isom0000")), box(outer, many)...)
	}
}
