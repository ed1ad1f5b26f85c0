package openapi

// Define adds schemas by name, such as those that are made of types.
func (d *Document) Define(schemas map[string]any) {
	into, _ := d.Components["schemas"].(object)
	if into == nil {
		into = object{}
		d.Components["schemas"] = into
	}
	for name, s := range schemas {
		into[name] = modern(s) // a copy
	}
	d.settleNames()
}

// Whole returns all that d describes, whatever leads to it, as an OpenAPI 3.1
// document. Every operation wants a bearer credential but those that say
// otherwise.
func (d *Document) Whole(info Info) map[string]any {
	paths := object{}
	for path, v := range d.Paths {
		item, _ := v.(object)
		if kept, found := shown(item); found {
			paths[path] = kept
		}
	}
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": info.Title, "version": info.Version, "description": info.Description},
		"servers": []any{object{"url": "/"}}, "security": []any{object{"key": []any{}}}, "tags": tags(paths),
		"paths": paths, "components": d.Components,
	}
}
