package app

import (
	"context"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice"
	"sluice.dev/sluice/docs"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/runtime/server"
	"sluice.dev/sluice/web/api"
	"sluice.dev/sluice/web/docsite"
	"sluice.dev/sluice/web/docsite/reference"
	"sluice.dev/sluice/web/errordocs"
	"sluice.dev/sluice/web/eventdocs"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

// documentation is the site at /docs: pages, references, codes and events, and the search
// in all of them. public returns the OpenAPI document of the public API.
func documentation(all bool, public func(context.Context) ([]byte, error), types []catalogue.Type) (api.Routes, error) {
	site, err := docsite.New(docs.Files, all, docsite.Changes(sluice.Changelog, all)...)
	if err != nil {
		return nil, err
	}
	admin, err := adminText(all)
	if err != nil {
		return nil, err
	}
	codes, events := errordocs.Pages{Site: site, All: all}, eventdocs.Pages{Types: types, Site: site}
	apis := []*reference.Pages{{Document: public}, {Document: constant(admin), API: adminReference}}
	if all {
		apis = append(apis, &reference.Pages{Document: constant(server.Description()), API: runtimeReference})
	}
	var chapters []docsite.Chapter
	for _, p := range apis {
		p.Site, p.Codes = site, codes.Codes()
		chapters = append(chapters, p.Chapter())
		site.IncludeIndex(p.Index)
	}
	site.Chapters(append(chapters, codes.Chapter(), events.Chapter())...)
	site.Include(append(codes.Entries(), events.Entries()...)...)
	return func(r chi.Router, a httpapi.Adapter) {
		for _, routes := range []api.Routes{site.Routes, codes.Routes, events.Routes} {
			routes(r, a)
		}
		for _, p := range apis {
			p.Routes(r, a)
		}
	}, nil
}

// What the references of the other APIs say of themselves.
var (
	adminReference = reference.API{
		Path: docsite.Root + "/admin-api", Title: "Admin API reference", About: "For those who run the platform, at the address of the admin API: every path but /health needs a key with the scope * of the operator.",
		Address: "SLUICE_ADMIN_URL", Key: "SLUICE_ADMIN_KEY", JSON: "/admin/v1/openapi.json",
	}
	runtimeReference = reference.API{
		Path: docsite.Root + "/runtime-api", Title: "Chat runtime API reference", About: "The chat runtime has an address of its own.",
		Address: "SLUICE_RUNTIME_URL", JSON: "/openapi.json of the runtime",
	}
)

// constant is a document that stays as it is.
func constant(text []byte) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return text, nil }
}

// runtimePages describe the pages of the runtime's reference, which a gateway alone does not have.
var runtimePages = []byte(`openapi: 3.1.0
info: {title: Reference of the chat runtime, version: 1.0.0}
paths:
  /docs/runtime-api:
    get:
      operationId: showRuntimeReference
      summary: The operations of the chat runtime, for people
      parameters: [{name: page, in: query, description: 'Which page of the list, from 1', schema: {type: integer, minimum: 1}}]
      responses: {'200': {description: A page, content: {text/html: {schema: {type: string}}}}}
  /docs/runtime-api/{operation}:
    get:
      operationId: showRuntimeReferenceOfOperation
      summary: One operation of the chat runtime, for people
      parameters: [{name: operation, in: path, required: true, description: 'Its operationId', schema: {type: string}, example: createChatCompletion}]
      responses: {'200': {description: A page, content: {text/html: {schema: {type: string}}}}}
`)
