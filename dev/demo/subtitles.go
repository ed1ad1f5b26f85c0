package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// subtitles has the stream captioned while it is on air, and reads what players of its HLS
// are shown.
func (f *film) subtitles(ctx context.Context) (string, error) {
	body := map[string]any{"language": "en", "label": "English", "generate": true}
	if err := f.call(ctx, http.MethodPost, "/v1/streams/"+f.stream.ID+"/captions", body, nil); err != nil {
		return "", err
	}
	shown := &pieces{text: map[string]string{}}
	err := until(ctx, long, func() error {
		list, err := f.subtitleList(ctx)
		if err != nil {
			return err
		}
		if err := f.shown(ctx, list, shown); err != nil {
			return err
		}
		if n, all := understood(shown.String()); 2*n < all {
			return fmt.Errorf("%d of %d words are in the subtitles: %s", n, all, shown)
		}
		return nil
	})
	return "players of HLS are shown, while it is live: " + shown.String(), err
}

// subtitleList is the address of the playlist of subtitles.
func (f *film) subtitleList(ctx context.Context) (string, error) {
	master, err := f.load(ctx, f.stream.Playback.HLS)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(master)) {
		if strings.HasPrefix(line, "#EXT-X-MEDIA:TYPE=SUBTITLES") {
			_, rest, _ := strings.Cut(line, `URI="`)
			name, _, _ := strings.Cut(rest, `"`)
			return beside(f.stream.Playback.HLS, name)
		}
	}
	return "", errors.New("the stream has no subtitles")
}

// shown reads the pieces of a playlist.
func (f *film) shown(ctx context.Context, list string, into *pieces) error {
	playlist, err := f.load(ctx, list)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(playlist)) {
		name := strings.TrimSpace(line)
		if name == "" || name[0] == '#' {
			continue
		}
		at, err := beside(list, name)
		if err != nil {
			return err
		}
		piece, err := f.load(ctx, at)
		if err != nil {
			return err
		}
		text, _ := cuesOf(string(piece))
		into.put(name, text)
	}
	return nil
}

// beside is an address that another one names.
func beside(address, name string) (string, error) {
	base, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	at, err := base.Parse(name)
	if err != nil {
		return "", err
	}
	return at.String(), nil
}

// pieces are texts, in the order in which they came.
type pieces struct {
	order []string
	text  map[string]string
}

func (p *pieces) put(name, text string) {
	if _, there := p.text[name]; !there {
		p.order = append(p.order, name)
	}
	p.text[name] = text
}

// String joins them. What one shows that the one before has shown is left out.
func (p *pieces) String() string {
	var out []string
	for _, name := range p.order {
		for cue := range strings.SplitSeq(p.text[name], " / ") {
			if cue != "" && (len(out) == 0 || out[len(out)-1] != cue) {
				out = append(out, cue)
			}
		}
	}
	return strings.Join(out, " / ")
}
