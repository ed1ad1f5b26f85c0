package docsite

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Marks of what a page says of media, chat, schedules and payments. They are comments
// of Markdown, so that its other readers do not see them.
const (
	opens  = "<!-- platform -->"
	closes = "<!-- /platform -->"
)

// shown is a page's Markdown without marks; unless a deployment has all products, also
// without what is marked, which is one of
//   - what stands between both marks within a line,
//   - a line that ends in the first, such as a row of a table: if it is the page's
//     title, the page is left out (nil),
//   - the lines between a line that is the first mark and one that is the second.
//
// Marks in code, where they would be seen, and those without their other half are errors.
func shown(raw []byte, all bool) ([]byte, error) {
	var b strings.Builder
	block, fence := 0, false // the line where the block began
	number := 0
	for line := range strings.Lines(string(raw)) {
		number++
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "```") {
			fence = !fence
		}
		marks := strings.Contains(text, opens) || strings.Contains(text, closes)
		switch {
		case marks && (fence || strings.Count(text[:strings.Index(text, "<!-- ")], "`")%2 != 0):
			return nil, fmt.Errorf("line %d: a mark in code", number)
		case text == opens && block == 0:
			block, line = number, "\n"
		case text == closes && block != 0:
			block, line = 0, "\n"
		case marks && block != 0:
			return nil, fmt.Errorf("line %d: a mark in the block of line %d", number, block)
		case marks:
			kept, err := within(line, all)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			if kept == "" && number == 1 {
				return nil, nil
			}
			line = kept
		case block != 0 && !all:
			continue
		}
		b.WriteString(line)
	}
	if block != 0 {
		return nil, fmt.Errorf("line %d: %s without %s", block, opens, closes)
	}
	return []byte(b.String()), nil
}

// within is a line without its marks, and unless all without what is marked in it.
func within(line string, all bool) (string, error) {
	text, last := strings.CutSuffix(strings.TrimRight(line, " \n"), opens)
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, opens)
		if strings.Contains(before, closes) {
			return "", fmt.Errorf("%s without %s", closes, opens)
		}
		b.WriteString(before)
		if !ok {
			break
		}
		marked, after, ok := strings.Cut(rest, closes)
		if !ok || strings.Contains(marked, opens) {
			return "", fmt.Errorf("%s without %s", opens, closes)
		}
		if all {
			b.WriteString(marked)
		}
		text = after
	}
	if last && !all {
		return "", nil
	}
	return strings.TrimRight(b.String(), " ") + "\n", nil
}

// pictures are files as shown shows them.
type pictures struct {
	fs.FS
	all bool
}

// ReadFile implements fs.ReadFileFS.
func (p pictures) ReadFile(name string) ([]byte, error) {
	raw, err := fs.ReadFile(p.FS, name)
	if err != nil {
		return nil, err
	}
	return shown(raw, p.all)
}

// products is how pages speak of what a gateway alone does not have.
var products = regexp.MustCompile(`(?i)live media|live streams?\b|media (product|engine)|\brecordings\b|recording[._](completed|ready|failed|id)|\bvods?\b|\bvideos?\b|\bfilms?\b|playback|` +
	`\bclips?\b|\bchat\b|chat_|completions\b|echo-1|model provider|provider of models|\bruntimes?\b|x402|x-payment|x-sluice-price|\bpriced\b|settlements?\b|` +
	`/v1/streams|\bstreams:|streams\.(list|create|read)|\bstreams? (of chat|went|ended|failed|was)|stream\.(\*|started|ended)|of (your|one) streams?\b|listStreams|createStream|` +
	`schedule|/v1/events|/v1/recordings|ffmpeg|mediamtx|\b(RTMP|SRT|WebRTC|HLS)\b|SLUICE_(RUNTIME|MEDIA|CHAT|X402|MODEL|RTMP|SRT|WEBRTC|HLS|FFMPEG)`)

// other is what looks like it and is not: how webhooks are retried, and words of others.
var other = strings.NewReplacer("retry_schedule", "", "Go runtime", "")

// speaksOfProducts reports whether a text names what a gateway alone does not have.
func speaksOfProducts(text string) bool { return products.MatchString(other.Replace(text)) }
