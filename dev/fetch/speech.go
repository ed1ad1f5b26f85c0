package fetch

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/dev/programs"
)

// tokenizer is the file of the model that tokens are made of.
const tokenizer = "tokenizer.bin"

// speech is the engine for speech to text, with its models.
func (c Config) speech(ctx context.Context, arch string) (string, error) {
	return c.engine(ctx, programs.Speech, "sherpa-onnx "+programs.Speech.Version, []part{
		{recognisers[arch].programs, map[string]string{"bin/" + programs.Speech.Inside: programs.Speech.Inside}},
		{recognisers[arch].library, map[string]string{"lib/libonnxruntime.so": "libonnxruntime.so"}},
		{silero, map[string]string{"livekit/plugins/silero/resources/silero_vad.onnx": "silero_vad.onnx"}},
		{moonshine, map[string]string{"tiny-en/encoder_model.ort": "encoder_model.ort", "tiny-en/decoder_model_merged.ort": "decoder_model_merged.ort", "tiny-en/" + tokenizer: tokenizer,
			"assets/beckett.wav": "beckett.wav", "assets/two_cities.wav": "two_cities.wav"}},
	}, makeTokens)
}

// makeTokens writes tokens.txt, the model's tokens as the program reads them, of its
// tokenizer.
func makeTokens(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, tokenizer))
	if err != nil {
		return err
	}
	text, err := tokens(b)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "tokens.txt"), []byte(text), 0o644), os.Remove(filepath.Join(dir, tokenizer)))
}

// tokens turns a tokenizer of Moonshine, a list of texts with their lengths in front (a
// byte, or two from 128 on), into lines of base64 and a number. What begins a word
// begins with a space.
func tokens(b []byte) (string, error) {
	var out strings.Builder
	for n := 0; len(b) > 0; n++ {
		size := int(b[0])
		b = b[1:]
		if size >= 128 && len(b) > 0 {
			size += int(b[0])*128 - 128
			b = b[1:]
		}
		if size > len(b) {
			return "", errors.New("the model's tokenizer is cut off")
		}
		token := strings.ReplaceAll(string(b[:size]), "▁", " ")
		fmt.Fprintf(&out, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), n)
		b = b[size:]
	}
	return out.String(), nil
}
