package voice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Voice is one that texts can be spoken in.
type Voice struct {
	ID         string `json:"id"`
	Language   string `json:"language"`    // a tag of BCP 47
	Name       string `json:"name"`        // of the language, for people
	Quality    string `json:"quality"`     // as its makers put it: x_low, low, medium or high
	SampleRate int    `json:"sample_rate"` // in Hz
	Default    bool   `json:"default"`     // taken when a request names neither voice nor language

	model, tokens string // paths
	speaker       int    // its number in a model of several
}

// Bounds of a folder of voices, which the operator has filled.
const (
	maxVoices = 256
	maxConfig = 1 << 20 // bytes of one voice's description
)

// piper is what is read of the description beside a model of Piper, NAME.onnx.json.
type piper struct {
	Audio struct {
		SampleRate int    `json:"sample_rate"`
		Quality    string `json:"quality"`
	} `json:"audio"`
	Language struct {
		Code string `json:"code"`
		Name string `json:"name_english"`
	} `json:"language"`
	Speakers map[string]int `json:"speaker_id_map"`
}

// list reads which voices folders have: in each folder below one a model of Piper as
// sherpa-onnx takes it (NAME.onnx, NAME.onnx.json, tokens.txt). A model of several
// speakers is a voice for each, NAME:SPEAKER. The first is the default. It returns
// maxVoices at most, and reads maxConfig bytes of each description.
func list(folders ...string) ([]Voice, error) {
	var voices []Voice
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, "*", "*.onnx.json"))
		if err != nil {
			return nil, fmt.Errorf("look for voices: %w", err)
		}
		slices.Sort(found)
		for _, description := range found {
			one, err := describe(description)
			if err != nil {
				return nil, fmt.Errorf("read voice %s: %w", filepath.Base(description), err)
			}
			voices = append(voices, one[:min(len(one), maxVoices-len(voices))]...)
		}
	}
	if len(voices) > 0 {
		voices[0].Default = true
	}
	return voices, nil
}

// describe is the voices of one model.
func describe(description string) ([]Voice, error) {
	info, err := os.Stat(description)
	if err == nil && info.Size() > maxConfig {
		err = fmt.Errorf("it is larger than %d bytes", maxConfig)
	}
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(description)
	if err != nil {
		return nil, err
	}
	var p piper
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, err
	}
	model := strings.TrimSuffix(description, ".json")
	v := Voice{ID: strings.TrimSuffix(filepath.Base(model), ".onnx"), Language: tag(p.Language.Code), Name: p.Language.Name, Quality: p.Audio.Quality,
		SampleRate: p.Audio.SampleRate, model: model, tokens: filepath.Join(filepath.Dir(model), "tokens.txt")}
	for _, needed := range []string{v.model, v.tokens} {
		if info, err := os.Stat(needed); err != nil || !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: %w", filepath.Base(needed), cmp.Or(err, fs.ErrInvalid))
		}
	}
	if len(p.Speakers) < 2 {
		return []Voice{v}, nil
	}
	var speakers []Voice
	for name, number := range p.Speakers {
		one := v
		one.ID, one.speaker = v.ID+":"+name, number
		speakers = append(speakers, one)
	}
	slices.SortFunc(speakers, func(a, b Voice) int { return cmp.Compare(a.speaker, b.speaker) })
	return speakers, nil
}

// tag is a language as tags have it: en-US for en_US.
func tag(s string) string { return strings.ReplaceAll(s, "_", "-") }

// speaks reports whether v speaks the language of a tag: en is any English, en-US that
// of the United States.
func (v Voice) speaks(wanted string) bool {
	have, want := strings.ToLower(v.Language), strings.ToLower(tag(wanted))
	return have == want || strings.HasPrefix(have, want+"-")
}

// choose finds the voice of an order. It fails with invalid_request, which names those
// that there are.
func choose(voices []Voice, o Order) (Voice, error) {
	for _, v := range voices {
		if (o.Voice == "" || o.Voice == v.ID) && (o.Language == "" || v.speaks(o.Language)) {
			return v, nil
		}
	}
	known := slices.ContainsFunc(voices, func(v Voice) bool { return v.ID == o.Voice })
	d := decision.Detail{Field: "voice", Issue: "is not one of the voices here", Expected: names(voices, func(v Voice) string { return v.ID })}
	switch {
	case known:
		d = decision.Detail{Field: "language", Issue: "is not that of the voice", Expected: "leave it out, or choose another voice: GET /v1/voice/voices"}
	case o.Voice == "":
		d = decision.Detail{Field: "language", Issue: "is spoken by none of the voices here", Expected: names(voices, func(v Voice) string { return v.Language })}
	}
	return Voice{}, apierror.Invalid([]decision.Detail{d})
}

// names lists some of the voices, for an error.
func names(voices []Voice, of func(Voice) string) string {
	var all []string
	for _, v := range voices {
		if name := of(v); !slices.Contains(all, name) && len(all) < 8 {
			all = append(all, decision.Cut(name, 100))
		}
	}
	return "one of " + strings.Join(all, ", ") + " (GET /v1/voice/voices has all)"
}
