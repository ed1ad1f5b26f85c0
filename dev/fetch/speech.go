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

// speechVersion is that of programs.Speech: of sherpa-onnx.
const speechVersion = "2.0.1"

// moonshine and silero are models, which are the same for every architecture: the
// program's own wheel has none.
var (
	moonshine = File{"the speech model Moonshine tiny-en 0.1.0", wheels,
		wheelsURL + "fd/a3/e3c0156664e9505af7b23072c3e947cec3a7ee938764c70424051366c368/moonshine_voice-0.1.0-py3-none-manylinux_2_34_x86_64.whl",
		"0f833deb43bad5dcfb4cfd3257b6df83ef9abd3f27be3199622fe41932e8d916", 56369045}
	silero = File{"the model Silero VAD", wheels,
		wheelsURL + "8b/58/a26b4a9ffe19e9426e25223ec6e5d8f3cf0d0a8dd7ebdff59d688fc239e2/livekit_plugins_silero-1.8.9-py3-none-any.whl",
		"afd32a25eab346a5258714edbadd13a56f8ad902ee4c1d8f928eeb1d971a64cf", 3903174}
)

// sherpa are the program and the library that it loads.
type sherpa struct{ program, library File }

var sherpas = map[string]sherpa{
	"amd64": {
		File{"sherpa-onnx " + speechVersion, wheels, wheelsURL + "8c/c1/1135ef20d5243192b86c5b2abb1a6c45705280e5f41124a10f0eaa812657/sherpa_onnx_bin-2.0.1-py3-none-manylinux2014_x86_64.whl",
			"af4d40a346415fbc4519af662350914662b435e8231072dcaac4697f79ecbaa2", 18991531},
		File{"ONNX Runtime for sherpa-onnx " + speechVersion, wheels, wheelsURL + "9a/4e/d946cc081864c8c242e787a73dd2ea61f861445f3d4207787d873e4dc65d/sherpa_onnx_core-2.0.1-py3-none-manylinux2014_x86_64.whl",
			"f4ee0ab91c4ae596e0e49d7de32522a946295e038a652f1c1884d89014ee4ec2", 10544878},
	},
	"arm64": {
		File{"sherpa-onnx " + speechVersion, wheels, wheelsURL + "ec/24/d51f64cbd791e2876a96a127d1ff633bbd68f1e07c3106a985d9c6939652/sherpa_onnx_bin-2.0.1-py3-none-manylinux2014_aarch64.whl",
			"755e664cef0ac0cda8917072e2cb8add62218b90df269a63aa174d3ee01dbe22", 17662660},
		File{"ONNX Runtime for sherpa-onnx " + speechVersion, wheels, wheelsURL + "73/d0/399776c4b6fa0a618d23cf711d580607d9890f7838352dacb36a9246f2b7/sherpa_onnx_core-2.0.1-py3-none-manylinux2014_aarch64.whl",
			"4a855a5c89c89885111e4e9c570e5da1aed63373c031b757d8046792d95fe8fe", 13257723},
	},
}

// tokenizer is the file of the model that tokens are made of.
const tokenizer = "tokenizer.bin"

// Speech puts the engine for speech to text, with its models, where programs.Speech
// looks for it, unless it is there, and returns the path of its program. The recordings
// that Moonshine's wheel has stand beside it.
func (c Config) Speech(ctx context.Context) (string, error) {
	arch, err := c.arch()
	if err != nil {
		return "", err
	}
	s := sherpas[arch]
	return c.engine(ctx, programs.Speech, "sherpa-onnx "+speechVersion, []part{
		{s.program, map[string]string{"bin/" + programs.Speech.Inside: programs.Speech.Inside}},
		{s.library, map[string]string{"lib/libonnxruntime.so": "libonnxruntime.so"}},
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
