package app

import (
	"context"
	"log/slog"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/media/engines"
)

// engineSettings are those of the document in force; while none can be read, those of
// an empty section.
func engineSettings(current *config.Current) func(context.Context) engines.Settings {
	return func(ctx context.Context) engines.Settings {
		v, err := current.Get(ctx)
		if err != nil {
			slog.WarnContext(ctx, "the settings of engines cannot be read", "cause", err)
			return nil
		}
		return settingsOf(v.Document.Engines)
	}
}

// settingsOf is a section of the document as the media product knows it.
func settingsOf(section *config.Engines) engines.Settings {
	if section == nil {
		return nil
	}
	settings := engines.Settings{}
	for name, e := range map[string]*config.Engine{engines.Transcribe: section.Transcribe, engines.Voice: section.Voice, engines.Vision: section.Vision} {
		if e != nil {
			settings[name] = engines.Setting{Use: e.Use, URL: e.URL, KeyFrom: e.KeyFrom, Model: e.Model,
				Timeout: e.Timeout.Or(0), MaxBytes: e.MaxBytes, Concurrency: int(e.Concurrency)}
		}
	}
	return settings
}
