package captions

import (
	"regexp"
	"strings"
	"time"
)

// Cue is one caption: what is said, and when.
type Cue struct {
	Start, End time.Duration
	Text       string // without tags, on one line
}

// maxCueText bounds what is kept of a caption: the line that passes it is the last.
const maxCueText = 500

// tag is markup inside a cue (W3C WebVTT, 4.2.2).
var tag = regexp.MustCompile(`<[^<>]*>`)

var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&nbsp;", " ", "&lrm;", "", "&rlm;", "", "&amp;", "&")

// Cues reads the captions of a WebVTT file, most of them at most, and passes over what is
// none. It takes time and memory linear in text.
func Cues(text string, most int) (list []Cue) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	var now *Cue
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.Contains(line, "-->"):
			start, end, ok := timing(line)
			if now = nil; ok && end > start {
				if len(list) == most {
					return list
				}
				list = append(list, Cue{Start: start, End: end})
				now = &list[len(list)-1]
			}
		case strings.TrimSpace(line) == "":
			now = nil
		case now != nil && len(now.Text) < maxCueText:
			now.Text = strings.TrimSpace(now.Text + " " + entities.Replace(tag.ReplaceAllString(line, "")))
		}
	}
	return list
}
