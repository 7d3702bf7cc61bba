bit<8> counter;
bit<8> limit = 5;
