package fetch

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// prepareVoice makes a model of Piper one that sherpa-onnx takes: what the description
// beside it says, NAME.onnx.json, goes into the model's metadata and into tokens.txt.
func prepareVoice(model string) error {
	raw, err := os.ReadFile(model + ".json")
	if err != nil {
		return err
	}
	var d struct {
		Audio struct {
			SampleRate int `json:"sample_rate"`
		} `json:"audio"`
		ESpeak struct {
			Voice string `json:"voice"`
		} `json:"espeak"`
		Language struct {
			Name string `json:"name_english"`
		} `json:"language"`
		Speakers int              `json:"num_speakers"`
		Phonemes map[string][]int `json:"phoneme_id_map"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("read the description of a voice: %w", err)
	}
	var tokens []string
	for phoneme, ids := range d.Phonemes {
		if len(ids) > 0 && phoneme != "\n" {
			tokens = append(tokens, phoneme+" "+strconv.Itoa(ids[0]))
		}
	}
	slices.Sort(tokens)
	if err := os.WriteFile(filepath.Join(filepath.Dir(model), "tokens.txt"), []byte(strings.Join(tokens, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	f, err := os.OpenFile(model, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(metadata([][2]string{{"model_type", "vits"}, {"comment", "piper"}, {"language", d.Language.Name}, {"voice", d.ESpeak.Voice},
		{"has_espeak", "1"}, {"n_speakers", strconv.Itoa(d.Speakers)}, {"sample_rate", strconv.Itoa(d.Audio.SampleRate)}}))
	return errors.Join(err, f.Close())
}

// metadata is properties as they stand at the end of a model of ONNX: field 14 of
// ModelProto is repeated, each a message of key (1) and value (2). What is appended to a
// message of protocol buffers is merged into it.
func metadata(properties [][2]string) (b []byte) {
	for _, p := range properties {
		b = field(b, 14, string(field(field(nil, 1, p[0]), 2, p[1])))
	}
	return b
}

// field appends a field of bytes.
func field(b []byte, number uint64, value string) []byte {
	b = binary.AppendUvarint(b, number<<3|2)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}
