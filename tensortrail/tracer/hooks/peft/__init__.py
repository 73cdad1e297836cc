"""What a recording sees of peft."""
