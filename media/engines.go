package media

import (
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/transcribe"
	"sluice.dev/sluice/media/transcribe/speech"
	"sluice.dev/sluice/platform/process/sandbox"
)

// transcription are the engines for speech to text.
func (c *Config) transcription() *engines.Product[transcribe.Engine] {
	own := &speech.Program{Path: c.Speech, Dir: c.Scratch}
	return &engines.Product[transcribe.Engine]{Name: engines.Transcribe, What: "speech recognition", Settings: c.Engines, Default: transcribe.Default, Lookup: c.EngineKey, Now: c.Now,
		Builtin: func() (transcribe.Engine, bool) { return own, c.Speech != "" && c.confines() && !own.Broken() },
		Remote:  transcribe.Remote}
}

// confines reports whether strangers' files may be read on this machine.
func (c *Config) confines() bool { return !c.NeedSandbox || sandbox.Check().Whole() }
