package vision

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text is what is written in a picture.
type Text struct {
	Text      string   `json:"text"`               // lines, and a blank one between paragraphs
	Languages []string `json:"languages,omitzero"` // that were looked for
	Words     []Word   `json:"words,omitzero"`     // in the order of reading, where they are known
	Cut       bool     `json:"cut,omitempty"`      // there were more words than are given
}

// Word is one, and where it stands.
type Word struct {
	Text       string  `json:"text"`
	Confidence float64 `json:"confidence"` // from 0 to 1
	Box        Box     `json:"box"`
	Line       int     `json:"line"` // of the picture's, from 0
}

// Bounds of what a picture says.
const (
	maxWords = 5000
	maxWord  = 100 // bytes
)

// ParseTable reads a table of Tesseract, whose copy of the picture was made scale times
// smaller. Rows that are no words, or make no sense, are passed over. It takes time and
// memory linear in the table.
func ParseTable(table []byte, scale int) Text {
	t := Text{Words: []Word{}}
	var said strings.Builder
	var line, paragraph string
	lines := 0
	for row := range bytes.Lines(table) {
		c := strings.Split(strings.TrimRight(string(row), "\r\n"), "\t")
		if len(c) != 12 || c[0] != "5" {
			continue
		}
		word := strings.TrimSpace(c[11])
		confidence, err := strconv.ParseFloat(c[10], 64)
		box, ok := boxOf(c[6:10], scale)
		if word == "" || len(word) > maxWord || !utf8.ValidString(word) || err != nil || !(confidence >= 0 && confidence <= 100) || !ok {
			continue
		}
		if len(t.Words) == maxWords {
			t.Cut = true
			break
		}
		thisParagraph := c[1] + " " + c[2] + " " + c[3]
		thisLine := thisParagraph + " " + c[4]
		switch {
		case len(t.Words) == 0:
		case thisParagraph != paragraph:
			said.WriteString("\n\n")
			lines++
		case thisLine != line:
			said.WriteString("\n")
			lines++
		default:
			said.WriteString(" ")
		}
		line, paragraph = thisLine, thisParagraph
		said.WriteString(word)
		t.Words = append(t.Words, Word{word, round(confidence/100, 3), box, lines})
	}
	t.Text = said.String()
	return t
}

// boxOf reads left, top, width and height.
func boxOf(c []string, scale int) (b Box, ok bool) {
	for i, to := range []*int{&b.X, &b.Y, &b.Width, &b.Height} {
		n, err := strconv.Atoi(c[i])
		if err != nil || n < 0 || n > maxSide {
			return b, false
		}
		*to = n * scale
	}
	return b, true
}
