DROP TABLE media_captions, media_assets, media_chunks, media_files, media_secrets;
