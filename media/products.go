package media

import (
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/engines/remote"
	"sluice.dev/sluice/media/vision"
	"sluice.dev/sluice/media/voice"
)

// speakers are the engines that speak texts.
func (c *Config) speakers() *engines.Product[voice.Speaker] {
	b := voice.Builtin{Program: c.Voice, Voices: c.Voices}
	here := b.Here() && c.confines()
	return &engines.Product[voice.Speaker]{Name: engines.Voice, What: "speech synthesis", Settings: c.Engines, Default: voice.Default, Lookup: c.EngineKey, Now: c.Now,
		Builtin: func() (voice.Speaker, bool) { return b, here },
		Remote:  func(a *remote.API) voice.Speaker { return voice.Remote{API: a} }}
}

// seers are the engines that see. The built-in one finds faces without a program.
func (c *Config) seers() *engines.Product[vision.Seer] {
	b := vision.Builtin{Tesseract: c.Tesseract}
	here := c.confines()
	return &engines.Product[vision.Seer]{Name: engines.Vision, What: "image recognition", Settings: c.Engines, Lookup: c.EngineKey, Now: c.Now,
		Builtin: func() (vision.Seer, bool) { return b, here },
		Remote:  func(a *remote.API) vision.Seer { return vision.Remote{API: a} }}
}
