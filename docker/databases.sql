-- The warehouse is in the database `health`, which the image makes; Dagster's runs and events are in one of their own.
CREATE DATABASE dagster;
