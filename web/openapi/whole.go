package openapi

// Define adds schemas by name, such as those that are made of types.
func (d *Document) Define(schemas map[string]any) {
	into, _ := d.Components["schemas"].(object)
	if into == nil {
		into = object{}
		d.Components["schemas"] = into
	}
	for name, s := range schemas {
		into[name] = s
	}
}

// Whole returns all that d describes, whatever leads to it, as an OpenAPI 3.1
// document. Every operation wants a bearer credential but those that say
// otherwise.
func (d *Document) Whole(info Info) map[string]any {
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": info.Title, "version": info.Version, "description": info.Description},
		"servers": []any{object{"url": "/"}}, "security": []any{object{"key": []any{}}},
		"paths": d.Paths, "components": d.Components,
	}
}
