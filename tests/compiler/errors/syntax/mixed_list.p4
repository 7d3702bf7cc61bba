const tuple<bit<8>, bit<8>> X = { 1, b = 2 };
