package editor

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/limits/growth"
)

// library has one film for every id but "none".
func library(id string) (Source, string) {
	if id == "none" {
		return Source{}, "names nothing of yours"
	}
	return Source{AssetID: id, FileID: id, Size: 1 << 20, Length: 10, Width: 1920, Height: 1080, Sound: true}, ""
}

// planned checks a timeline of films of ten seconds.
func planned(t *testing.T, body string) (plan, error) {
	t.Helper()
	var in Input
	if err := httpapi.Unmarshal([]byte(body), &in); err != nil {
		t.Fatal(err)
	}
	return check(in, func(id string) found { s, problem := library(id); return found{s, problem} })
}

func TestWhereClipsLieOnTheTimeline(t *testing.T) {
	t.Parallel()
	p, err := planned(t, `{"timeline": {"clips": [{"asset_id": "a", "out": 4}, {"asset_id": "b", "speed": 2, "transition": {"type": "crossfade", "duration": 2}},
		{"asset_id": "a", "in": 1, "out": 3, "transition": {"type": "fade", "duration": 1}}]}, "output": {"width": 640, "height": 360, "frame_rate": 25}}`)
	if err != nil {
		t.Fatal(err)
	}
	// 4 s, then 5 s of which 2 are shared, then 2 s.
	for i, want := range []struct{ start, length, overlap, in, out int }{{0, 100, 0, 0, 0}, {50, 125, 50, 0, 13}, {175, 50, 0, 13, 0}} {
		s := p.shots[i]
		if s.start != want.start || s.length != want.length || s.overlap != want.overlap || s.fadeIn != want.in || s.fadeOut != want.out {
			t.Errorf("%d: %+v, want %+v", i, s, want)
		}
	}
	if p.frames != 225 || p.length().Seconds() != 9 || len(p.sources) != 2 {
		t.Errorf("%d frames, %v, %d sources", p.frames, p.length(), len(p.sources))
	}
	for frame, want := range map[int]int{0: 1, 49: 1, 50: 2, 99: 2, 100: 1, 174: 1, 175: 1, 224: 1} {
		if small, which := p.at(frame); len(small.shots) != want || which < 0 || which >= small.shots[len(small.shots)-1].frames {
			t.Errorf("frame %d: %d shots, %d of them", frame, len(small.shots), which)
		}
	}
}

func TestBoundsOfATimeline(t *testing.T) {
	t.Parallel()
	repeated := func(n int, clip string) string { return strings.TrimSuffix(strings.Repeat(clip+",", n), ",") }
	for name, c := range map[string]struct{ body, field string }{
		"an hour and more":  {`{"timeline": {"clips": [` + repeated(20, `{"asset_id": "long"}`) + `]}}`, "timeline.clips"},
		"too many bytes":    {`{"timeline": {"clips": [{"asset_id": "heavy"}, {"asset_id": "heavier"}]}}`, "timeline"},
		"an unknown length": {`{"timeline": {"clips": [{"asset_id": "endless"}]}}`, "timeline.clips[0].out"},
		"no picture":        {`{"timeline": {"clips": [{"asset_id": "blind"}]}}`, "timeline.clips[0].asset_id"},
		"no sound":          {`{"timeline": {"clips": [{"asset_id": "a"}], "audio": [{"asset_id": "dumb"}]}}`, "timeline.audio[0].asset_id"},
	} {
		var in Input
		if err := json.Unmarshal([]byte(c.body), &in); err != nil {
			t.Fatal(err)
		}
		err := in.Check(func(id string) (Source, string) {
			s, _ := library(id)
			switch id {
			case "long":
				s.Length = 200
			case "heavy", "heavier":
				s.Size = maxSources/2 + 1
			case "endless":
				s.Length = 0
			case "blind":
				s.Height = 0
			case "dumb":
				s.Sound = false
			}
			return s, ""
		})
		e, ok := errors.AsType[*apierror.Error](err)
		if !ok || len(e.Details) != 1 || e.Details[0].Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a caller writes, the graph is made of our words: nothing of it is in there.
// A text is drawn when a picture is made of it, not for whoever has a timeline checked.
func TestTextsAreMeasuredOnly(t *testing.T) {
	overlay := `{"type": "text", "text": "Wide\nand\nhigh", "size": 0.5}`
	body := `{"timeline": {"clips": [{"asset_id": "a"}], "overlays": [` + strings.Repeat(overlay+",", maxOverlays-1) + overlay + `]}, "output": {"width": 3840, "height": 2160}}`
	var p plan
	growth.Linear(t, len(body), 256, 1<<20, func() {
		var err error
		if p, err = planned(t, body); err != nil {
			t.Fatal(err)
		}
	})
	raw, err := p.layers[0].made()
	if err != nil {
		t.Fatal(err)
	}
	head, err := png.DecodeConfig(bytes.NewReader(raw))
	if err != nil || head.Width != p.layers[0].w || head.Height != p.layers[0].h || head.Width*head.Height < 1<<22 {
		t.Errorf("%+v, %v, want %d by %d", head, err, p.layers[0].w, p.layers[0].h)
	}
}

func TestNoTextOfACallerIsInTheGraph(t *testing.T) {
	t.Parallel()
	const evil = "';[0:v]movie=/etc/passwd[x];drawtext"
	text, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planned(t, fmt.Sprintf(`{"title": %s, "timeline": {"clips": [{"asset_id": %s}], "overlays": [{"type": "text", "text": %s, "size": 0.02}]}}`, text, text, text))
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{plan: p.in(window{0, p.frames})}
	b.layers(b.shots())
	b.plan = p
	b.mix(b.heard())
	graph := b.graph.String()
	if strings.Contains(graph, "movie") || strings.Contains(graph, "passwd") || strings.Contains(graph, "drawtext") || strings.Contains(fmt.Sprint(b.inputs), "passwd") {
		t.Error(graph, b.inputs)
	}
}

// A timeline is refused with places, or its plan is in bounds and survives being stored.
func FuzzCheck(f *testing.F) {
	f.Add(`{"timeline": {"clips": [{"asset_id": "a"}, {"asset_id": "b", "speed": 2, "transition": {"type": "crossfade"}}], "overlays": [{"type": "text", "text": "Hi"}]}}`)
	f.Add(`{"timeline": {"clips": [{"asset_id": "a", "in": 1, "out": 2, "fit": "cover"}, {"asset_id": "none", "transition": {"type": "fade", "duration": 2}}], "audio": [{"asset_id": "a", "start": 0.5}], "fade_in": 1}, "output": {"width": 64, "height": 64, "frame_rate": 10}}`)
	f.Add(`{"timeline": {"clips": [{"asset_id": "a"}], "overlays": [{"type": "image", "image": "` + base64.StdEncoding.EncodeToString([]byte("\x89PNG")) + `"}]}}`)
	f.Fuzz(func(t *testing.T, body string) {
		var in Input
		if httpapi.Unmarshal([]byte(body), &in) != nil {
			return
		}
		look := func(id string) found { s, problem := library(id); return found{s, problem} }
		growth.Linear(t, len(body), 256, 1<<20, func() { _, _ = check(in, look) })
		p, err := check(in, look)
		if err != nil {
			return
		}
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var again Input
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		second, err := check(again, look)
		if err != nil || second.frames != p.frames || len(second.layers) != len(p.layers) {
			t.Fatalf("%s: stored as %s: %v", body, raw, err)
		}
		if p.frames < 1 || p.length().Seconds() > maxLength+1 || len(p.shots) > maxClips {
			t.Fatalf("%+v", p)
		}
		at := 0
		for i, s := range p.shots {
			if s.start != at-s.overlap || s.overlap+s.fadeOut > s.length || s.fadeIn+s.fadeOut > s.length || i > 0 && s.overlap > p.shots[i-1].length {
				t.Fatalf("%d: %+v", i, s)
			}
			at = s.start + s.length
		}
	})
}
