DROP TABLE media_transport_sources, media_links;
